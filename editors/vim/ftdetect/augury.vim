autocmd BufRead,BufNewFile *.aug setfiletype augury
autocmd BufRead,BufNewFile *.spaseq setfiletype spaseq
